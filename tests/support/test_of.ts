/**
 * Returns a function that defines tests, each with a subject of its own, which is disposed of
 * behind it if it can be.
 */
export function testOf<Subject extends object>(
  create: () => Subject | Promise<Subject>,
): (title: string, act: (subject: Subject) => void | Promise<void>) => void {
  return (title, act) =>
    Deno.test(title, async () => {
      const subject = await create();
      await using _ = Symbol.asyncDispose in subject ? subject as AsyncDisposable : undefined;
      await act(subject);
    });
}
