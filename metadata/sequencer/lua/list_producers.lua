-- PURPOSE  List the known producers of some partitions. Each call checks a part of all rows, from a cursor on.
-- ARGV     1 epoch, 2 cursor ('0': start), 3 approximate number to check, 4 packed 'topic id:partition' names
-- RETURNS  packed {'ok', next cursor ('0': all were checked), [[producer id, name, epoch, last sequence, time (ms; -1: not
--          known)], …]} | {'lost', reason}: the newest visible batch of each
-- INVARIANTS  Changes nothing. A producer may come twice, as with HSCAN.

local keys = keys_by_name(KEYS)
local _, problem = check_epoch(keys, tonumber(ARGV[1]))
if problem then return cmsgpack.pack(problem) end
local wanted = {}
for _, name in ipairs(cmsgpack.unpack(ARGV[4])) do wanted[name] = true end
local found = redis.call('HSCAN', keys.producers, ARGV[2], 'COUNT', ARGV[3])
local listed = {}
for i = 1, #found[2], 2 do
  local producer, name = found[2][i]:match('^(%d+):(.+)$')
  if producer and wanted[name] then
    local rows = cmsgpack.unpack(found[2][i + 1])
    for at = #rows, 1, -1 do
      local row = rows[at]
      if row[1] < 0 then
        listed[#listed + 1] = {producer, name, row[2], row[4], row[6] or -1}
        break
      end
    end
  end
end
return cmsgpack.pack({'ok', found[1], listed})
