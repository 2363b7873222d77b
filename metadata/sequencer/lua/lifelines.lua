-- Lifelines: a broker subscribes to a channel of its own, on a connection that ends with its process.
-- INVARIANT: only the server that has seen a lifeline can miss it: connections are one server's.

-- RETURNS whether somebody subscribes to the broker's channel here, or nil where that may not be asked.
local function is_lifeline_held(keys, incarnation)
  local found = redis.pcall('PUBSUB', 'NUMSUB', keys.brokers .. ':' .. incarnation)
  if found.err then return nil end
  return found[2] > 0
end

-- Tells all brokers to ask who lives. Who may not be told finds out with its next heartbeat.
local function announce_change(keys)
  redis.pcall('PUBLISH', keys.brokers, 'changed')
end
