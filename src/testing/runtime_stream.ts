/**
 * Streams of this runtime that are read and written by promises, whatever the runtime has.
 *
 * @module
 */
import { connect as connectRuntime } from "../transport/default.ts";
import type { Connect, Transport } from "../transport/transport.ts";

/** Opens a stream with the sockets of this runtime. */
export const connect: Connect = async (target, options) => {
  const stream = await connectRuntime(target, options);
  return (stream as Partial<Transport>).read ? stream : promising(stream);
};

/** Makes promises of callbacks. */
export function promising(stream: Transport): Transport {
  let unread: Uint8Array = new Uint8Array(0);
  const nextChunk = () =>
    new Promise<Uint8Array | null>((resolve, reject) => {
      stream.receive!((bytes, count) => {
        resolve(bytes.slice(0, count)); // a copy, because the stream uses its array again
        return false;
      }, (error) => error ? reject(error) : resolve(null));
    });
  return {
    async read(buffer) {
      const bytes = unread.length > 0 ? unread : await nextChunk();
      if (!bytes) return null;
      const count = Math.min(bytes.length, buffer.length);
      buffer.set(bytes.subarray(0, count));
      unread = bytes.subarray(count);
      return count;
    },
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.send!(bytes, (error) => error ? reject(error) : resolve(bytes.length));
      }),
    close: () => stream.close(),
  };
}
