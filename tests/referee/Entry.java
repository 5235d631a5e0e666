import java.nio.ByteBuffer;

/** Bytes to append to a segment, whole batches or messages, and the last offset in them. */
record Entry(ByteBuffer bytes, long lastOffset) {
}
