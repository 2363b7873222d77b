-- The server's identity and the epoch bound to it. Part of every script.
-- INVARIANT: a verb does nothing unless the epoch it was asked for is the one this very server was
-- activated for; run_id alone is not enough (a primary that is demoted, resynchronised and promoted
-- again keeps it). A missing field is never read as 0, a missing key never as an empty one.

local function identity()
  local run_id = redis.call('INFO', 'server'):match('run_id:(%x+)')
  local replication = redis.call('INFO', 'replication')
  return run_id, replication:match('master_replid:(%x+)'), replication:match('role:(%a+)')
end

-- RETURNS meta {ticket, visible, producer, group_term, stream_start, stream_end} of the epoch, or nil and a
--         status word with its reason.
local function check_epoch(keys, epoch)
  local meta = redis.pcall('HMGET', keys.meta, 'epoch', 'run_id', 'replid', 'ticket', 'visible', 'producer', 'group_term',
    'stream_start', 'stream_end')
  if meta.err then return nil, {'lost', 'the sequencer\'s state is not bucketlog\'s'} end
  for i = 1, 9 do
    if not meta[i] then return nil, {'lost', 'the sequencer has no state'} end
  end
  local run_id, replid, role = identity()
  if role ~= 'master' then return nil, {'lost', 'the sequencer is now a ' .. tostring(role)} end
  if meta[2] ~= run_id or meta[3] ~= replid then
    return nil, {'lost', 'the sequencer is another server, or the same one with other data'}
  end
  if tonumber(meta[1]) ~= epoch then
    return nil, {'lost', 'the sequencer is at epoch ' .. tostring(tonumber(meta[1]))}
  end
  local always = {}
  for i, name in ipairs(ALWAYS_THERE) do always[i] = keys[name] end
  if redis.call('EXISTS', unpack(always)) ~= #always then
    return nil, {'lost', 'a part of the sequencer\'s state is missing'}
  end
  return {ticket = tonumber(meta[4]), visible = tonumber(meta[5]), producer = tonumber(meta[6]),
    group_term = tonumber(meta[7]), stream_start = tonumber(meta[8]), stream_end = tonumber(meta[9])}
end
