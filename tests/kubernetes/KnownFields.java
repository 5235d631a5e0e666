import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.introspect.Annotated;
import com.fasterxml.jackson.databind.introspect.JacksonAnnotationIntrospector;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads each {@code CLASS FILE} as the client that Spark has, and prints the first field that it does not know. */
public final class KnownFields {
    private KnownFields() {}

    public static void main(String[] words) throws Exception {
        ObjectMapper mapper = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        mapper.setAnnotationIntrospector(new JacksonAnnotationIntrospector() {
            @Override
            public Boolean hasAnySetter(Annotated one) {
                return false; // the client would keep what it does not know
            }
        });
        for (int i = 0; i < words.length; i += 2) {
            try {
                mapper.readValue(Files.readString(Path.of(words[i + 1])),
                    Class.forName("io.fabric8.kubernetes.api.model." + words[i]));
            } catch (com.fasterxml.jackson.core.JsonProcessingException unknown) {
                System.out.println(words[i] + ": " + unknown.getOriginalMessage());
            }
        }
    }
}
