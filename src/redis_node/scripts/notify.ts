/**
 * The part of scripts that notifies the first in a queue: of every script that frees a key. The queue itself is described
 * in `queue.ts`.
 *
 * @module
 */

/**
 * Notifies the first ticket in a key's queue, and its successor. Drops tickets whose clients are gone. Returns whether
 * it notified anybody: it does not if the first ticket is `own`, or if the node refuses what it takes.
 */
export const NOTIFY = `local function publish(ticket, message)
  local id = ticket:match('^(.-):')
  return id and redis.pcall('PUBLISH', 'hasp:wake:' .. id, message) or 0
end
local function notify(key, own)
  local queue = 'hasp:queue:' .. key
  while true do
    local first, second = unpack(redis.pcall('ZRANGE', queue, 0, 1))
    if not first or first == own then return false end
    local receivers = publish(first, first)
    if receivers ~= 0 then
      if second and second ~= own then publish(second, second .. '+') end
      return type(receivers) == 'number'
    end
    if type(redis.pcall('ZREM', queue, first)) == 'table' then return false end
  end
end
`;
