import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/** Fills generated messages at random, with what the schema of a version lets a field be. */
final class MessageDraw {
    private static final List<Long> ENDS = List.of(0L, 1L, -1L, Long.MIN_VALUE, Long.MAX_VALUE);
    private static final int FIRST_UNKNOWN_TAG = 50;
    private static final int DEEP = 2;

    private final Draw draw;

    MessageDraw(Draw draw) {
        this.draw = draw;
    }

    Message message(Class<?> type, short version) throws ReflectiveOperationException {
        Schema schema = (Schema) type.getField("SCHEMA_" + version).get(null);
        return struct(type, schema, 0);
    }

    private Message struct(Class<?> type, Schema schema, int depth)
            throws ReflectiveOperationException {
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        Map<String, Field> fields = fields(type);
        for (BoundField bound : schema.fields()) {
            if (!(bound.def.type instanceof TaggedFields tagged)) {
                set(message, fields.get(plain(bound.def.name)), bound.def.type, depth);
                continue;
            }
            for (var known : tagged.fields().values()) {
                if (draw.chance(0.6)) {
                    set(message, fields.get(plain(known.name)), known.type, depth);
                }
            }
            for (int tag = FIRST_UNKNOWN_TAG; draw.chance(0.15); tag += draw.between(1, 300)) {
                message.unknownTaggedFields()
                    .add(new RawTaggedField(tag, draw.bytes(draw.skewed(200))));
            }
        }
        return message;
    }

    private static Map<String, Field> fields(Class<?> type) {
        Map<String, Field> fields = new HashMap<>();
        for (Field field : type.getDeclaredFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                fields.put(plain(field.getName()), field);
            }
        }
        return fields;
    }

    /** The name of a field in schema and class, which write it in different ways. */
    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    private void set(Message message, Field field, Type type, int depth)
            throws ReflectiveOperationException {
        if (type.isNullable() && draw.chance(0.3)) {
            field.set(message, null);
        } else if (type.arrayElementType().isPresent()) {
            field.set(message, array(message, field, type.arrayElementType().get(), depth));
        } else if (type instanceof Schema schema) {
            field.set(message, struct(field.getType(), schema, depth + 1));
        } else if (field.getType() == ByteBuffer.class) {
            field.set(message, ByteBuffer.wrap((byte[]) primitive(type)));
        } else {
            field.set(message, primitive(type));
        }
    }

    private Collection<Object> array(Message owner, Field field, Type element, int depth)
            throws ReflectiveOperationException {
        Collection<Object> values = empty(owner, field);
        int most = draw.chance(0.02) && depth == 0 ? 500 : depth < DEEP ? 5 : 2;
        int length = draw.chance(0.2) ? 0 : draw.between(1, most);
        for (int i = 0; i < length; i++) {
            values.add(element instanceof Schema schema
                ? struct(elementType(field), schema, depth + 1)
                : primitive(element));
        }
        return values;
    }

    @SuppressWarnings("unchecked")
    private static Collection<Object> empty(Message owner, Field field)
            throws ReflectiveOperationException {
        return field.getType() == List.class
            ? new ArrayList<>()
            : (Collection<Object>) field.getType().getDeclaredConstructor().newInstance();
    }

    private static Class<?> elementType(Field field) throws ClassNotFoundException {
        String list = field.getGenericType().getTypeName();
        return Class.forName(
            list.contains("<")
                ? list.substring(list.indexOf('<') + 1, list.length() - 1)
                : list.substring(0, list.length() - "Collection".length()));
    }

    private Object primitive(Type type) {
        String name = type.toString().replace("COMPACT_", "").replace("NULLABLE_", "");
        return switch (name) {
            case "BOOLEAN" -> draw.chance(0.5);
            case "INT8" -> (byte) number();
            case "INT16" -> (short) number();
            case "UINT16" -> (int) number() & 0xffff;
            case "INT32" -> (int) number();
            case "UINT32" -> number() & 0xffffffffL;
            case "INT64" -> number();
            case "FLOAT64" -> Double.longBitsToDouble(number());
            case "UUID" -> draw.chance(0.2) ? Uuid.ZERO_UUID : new Uuid(number(), number());
            case "STRING" -> text();
            case "BYTES" -> draw.bytes(draw.skewed(300));
            default -> throw new IllegalArgumentException("no values of type " + name);
        };
    }

    /** Small numbers, ends of all widths, and any number. */
    private long number() {
        if (draw.chance(0.3)) {
            return draw.between(-3, 300);
        }
        long number = draw.chance(0.3) ? draw.oneOf(ENDS) : draw.anyLong();
        return draw.chance(0.3) ? number >> draw.oneOf(List.of(56, 48, 32)) : number;
    }

    /** Letters of all planes, lone surrogates (which UTF-8 loses) among them; few are long. */
    private String text() {
        int length = draw.chance(0.005) ? 5_000 : draw.skewed(draw.chance(0.05) ? 300 : 12);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            int limit = draw.oneOf(List.of(0x7f, 0xff, 0xffff, Character.MAX_CODE_POINT));
            text.appendCodePoint(draw.between(0, limit));
        }
        return text.toString();
    }
}
