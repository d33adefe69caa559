/** The floor in Node and Bun: `node:net` that receives into one static buffer a node. */

import { connect } from "node:net";
import { once } from "node:events";
import { Floor, type FloorSocket, type OnChunk } from "./floor.ts";

const RECEIVE_BYTES = 65_536;

/** {@linkcode Floor} over `node:net`. */
export class NodeFloor extends Floor {
  protected override async connect(
    hostname: string,
    port: number,
    onChunk: OnChunk,
  ): Promise<FloorSocket> {
    const received = new Uint8Array(RECEIVE_BYTES);
    const socket = connect({
      host: hostname,
      port,
      noDelay: true,
      onread: {
        buffer: received,
        callback: (length) => {
          onChunk(received, length);
          return true;
        },
      },
    });
    await once(socket, "connect");
    socket.on("error", () => socket.destroy());
    return {
      write: (bytes) => void (socket.writable && socket.write(bytes)),
      close: () => void socket.destroy(),
    };
  }
}
