-- Time: the server's own, so that ages never depend on brokers' clocks.
-- `given` is a test's clock in milliseconds, '' otherwise.

local function clock_ms(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
