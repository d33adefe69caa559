/**
 * Memories that cannot grow without a limit.
 *
 * @module
 */

/**
 * Sets an entry of a map as its latest.
 *
 * @param most How many entries the map may have; the oldest is forgotten for one more.
 */
export function setLatest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key); // so that it goes to the end
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value!);
}
