/** The bytes that a server replies, for comparisons byte for byte. */
import { encodeCommand, joinCommands } from "../../src/redis/encoder.ts";

const END = "$4\r\nover\r\n";
const latin1 = new TextDecoder("latin1");

/** The replies of a real server to commands, as a byte string. */
export async function rawReplies(
  connection: Deno.TcpConn,
  commands: readonly (readonly string[])[],
): Promise<string> {
  const bytes = joinCommands([...commands, ["ECHO", "over"]].map((words) => encodeCommand(words)));
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  while (!text.endsWith(END)) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error("the server closed the connection");
    text += latin1.decode(buffer.subarray(0, count));
  }
  return text.slice(0, -END.length);
}
