/**
 * Lines out of a stream of text.
 *
 * @module
 */

/** Cuts text into lines, without their ends. What stands after the last line's end is dropped. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let unread = "";
    super({
      transform(chunk, controller) {
        const lines = (unread + chunk).split("\n");
        unread = lines.pop()!;
        for (const line of lines) controller.enqueue(line);
      },
    });
  }
}
