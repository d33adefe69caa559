/**
 * The part of `@nestjs/common` that the page on NestJS uses, for its test: decorators that keep
 * what they are given.
 */

/** What `Module` was given, by class. */
export const modules: Map<unknown, { providers: { useFactory(): unknown }[] }> = new Map();
/** The properties that `Inject` fills, by the prototype of their class. */
export const injected: Map<object, string> = new Map();

export const Global = () => (_class: unknown): void => {};
export const Module = (settings: { providers: { useFactory(): unknown }[] }) => (of: unknown) =>
  void modules.set(of, settings);
export const Inject = (_token: unknown) => (target: object, name?: string): void => {
  if (name !== undefined) injected.set(target, name);
};
