-- What `reserve` does with entries about transactional ids: inits, ends, offsets, ids to be forgotten.
-- A judge answers {status, …} and changes records of `ctx` in memory only, and only where the status is 'ok':
--   {'ok', producer, epoch, last producer, last epoch, ended producer, ended epoch, [[topic id, partition, base, stamp], …],
--    and, for an init that keeps a transaction, the pair that began the transaction}
--   {'done', producer, epoch}: nothing is to be written, the pair is what the client goes on with
--   {'wait' | 'again' | 'mapping' | 'fenced' | 'abortable' | 'prepared' | 'invalid_state' | 'not_coordinator' | 'too_many'}
-- INVARIANTS  An end has a marker in every partition of the transaction whose topic exists, and enters the key of
-- every group of the transaction. It depends on all open segments of these. An init ends the ongoing transaction in the
-- same entry, or keeps it. After an init that keeps it, another pair owns the id and ends the transaction. The markers
-- carry the pair that began the transaction; this pair may no longer write.
-- `ctx`: keys, ticket, now, limits, txns, txns_dirty, deadlines, entered (ids with an entry of this ticket), topics,
-- partitions, groups, markers_left, ids_left, listed_left; functions pending_elsewhere, take_marker, enter.

local function dirty(ctx, field, r)
  ctx.txns[field], ctx.txns_dirty[field], ctx.entered[field] = r, r, true
end

-- RETURNS the pair after `r`'s; `candidate`: a fresh producer id.
local function raised(r, candidate)
  if r.epoch >= LAST_EPOCH then return candidate, 0 end
  return r.producer, r.epoch + 1
end

-- RETURNS {topic id, partition, field} for each marker, or nil where the topic's fate is open.
local function marker_places(ctx, txn, r)
  local parts, names, fields = {}, {}, {}
  for name, topic_id, partition in part_list(ctx.keys, txn, r).text:gmatch('([^/;]+)/(%x+):(%d+);') do
    local field = topic_id .. ':' .. partition
    parts[#parts + 1] = {name, topic_id, partition, field}
    if ctx.topics[name] == nil then names[#names + 1] = name; ctx.topics[name] = false end
    if not ctx.partitions[field] then fields[#fields + 1] = field end
  end
  for name, versions in pairs(load_records(ctx.keys.topics, names)) do ctx.topics[name] = versions end
  for field, record in pairs(load_records(ctx.keys.partitions, fields)) do ctx.partitions[field] = record end
  local places = {}
  for _, part in ipairs(parts) do
    local versions = ctx.topics[part[1]] or {}
    local newest = versions[#versions]
    if newest and ctx.pending_elsewhere(newest[1]) then return nil end
    local lives = newest and not newest[4] and newest[2] == part[2] and ctx.partitions[part[4]]
    if lives then places[#places + 1] = {part[2], tonumber(part[3]), part[4]} end
  end
  return places
end

-- Is a batch or an entry with offsets of the transaction pending at another writer?
local function content_is_open(ctx, r, places)
  local fields, producer = {}, transaction_pair(r)
  for _, place in ipairs(places) do fields[#fields + 1] = producer .. ':' .. place[3] end
  for _, rows in pairs(load_records(ctx.keys.producers, fields)) do
    if #rows > 0 and ctx.pending_elsewhere(rows[#rows][1]) then return true end
  end
  for _, ticket in ipairs(tickets_of(r.offsets)) do
    if ctx.pending_elsewhere(ticket) then return true end
  end
  return false
end

-- RETURNS the places of the markers, or nil: ask again.
local function judge_markers(ctx, txn, r, commit)
  if r.part_count > ctx.markers_left and ctx.markers_left < ctx.limits.partitions then return nil end
  local places = marker_places(ctx, txn, r)
  if not places or commit and content_is_open(ctx, r, places) then return nil end
  return places
end

local function take_markers(ctx, r, places)
  local markers = {}
  for i, place in ipairs(places) do
    local base, stamp = ctx.take_marker(place[3])
    markers[i] = {place[1], place[2], base, stamp}
  end
  ctx.markers_left = ctx.markers_left - #markers
  for _, group in ipairs(r.groups) do
    local field = group_field(group)
    if not ctx.groups[field] then
      ctx.groups[field] = load_records(ctx.keys.groups, {field})[field] or nobodys('')
    end
    ctx.enter(field, ctx.groups[field])
  end
  return markers
end

local function set_next(ctx, field, r, kind, record)
  record.updated = ctx.now
  r.next = {ticket = ctx.ticket, kind = kind, record = record}
  dirty(ctx, field, r)
end

-- An init that keeps the ongoing transaction. If the transaction has no timeout, an init without two-phase commit is refused.
local function judge_keep(ctx, field, r, record, candidate)
  if r.two_phase and not record.two_phase then return {'invalid_state'} end
  record.producer, record.epoch = raised(r, candidate)
  record.txn_producer, record.txn_epoch = transaction_pair(r)
  set_next(ctx, field, r, 'keep', record)
  return {'ok', record.producer, record.epoch, '', NO_EPOCH, '', NO_EPOCH, {}, record.txn_producer, record.txn_epoch}
end

-- An id's pair for a producer that starts, or that goes on after an error (expected: the pair that it has).
local function judge_init(ctx, entry)
  local _, id, expected, expected_epoch, timeout, version, candidate, two_phase, keeps = unpack(entry)
  local field = txn_field(id)
  local r = ctx.txns[field]
  local record = {producer = candidate, epoch = 0, last_producer = '', last_epoch = NO_EPOCH, outcome = 'none', by = '',
    version = version, timeout = timeout, two_phase = two_phase}
  if not r then
    if ctx.ids_left <= 0 then return {'too_many'} end
    ctx.ids_left = ctx.ids_left - 1
    set_next(ctx, field, new_transactional_id(), 'init', record)
    return {'ok', candidate, 0, '', NO_EPOCH, '', NO_EPOCH, {}}
  end
  if r.next then return {'wait'} end
  if expected ~= '' then
    if is_owner(r, expected, expected_epoch) then
      if not r.ongoing then record.last_producer, record.last_epoch = expected, expected_epoch end
    elseif is_last(r, expected, expected_epoch) and not r.ongoing then
      return {'done', r.producer, r.epoch}
    else
      return {'fenced'}
    end
  end
  if keeps and r.ongoing then return judge_keep(ctx, field, r, record, candidate) end
  local markers, ended, ended_epoch = {}, '', NO_EPOCH
  if r.ongoing then
    local places = judge_markers(ctx, field, r, false)
    if not places then return {'wait'} end
    markers = take_markers(ctx, r, places)
    ended, ended_epoch = transaction_pair(r)
    record.serial = r.serial + 1
  end
  record.producer, record.epoch = raised(r, candidate)
  set_next(ctx, field, r, 'init', record)
  return {'ok', record.producer, record.epoch, record.last_producer, record.last_epoch, ended, ended_epoch, markers}
end

-- RETURNS the answer to an end that has nothing to end, or nil. `serial` -1: of any transaction. A version 1 end names the
-- serial of the transaction that was ongoing when it arrived.
local function end_answer(r, producer, epoch, commit, version, by, serial)
  local outcome = commit and 'committed' or 'aborted'
  if not is_owner(r, producer, epoch) then
    local was_last = is_last(r, producer, epoch)
    if version >= 2 and was_last and r.outcome ~= 'none' then
      if r.outcome == outcome then return {'done', r.producer, r.epoch} end
      return {r.by == 'server' and 'abortable' or 'invalid_state'}
    end
    if version < 2 and was_last and r.by == 'server' then
      if commit then return {'abortable'} end
      return {'done', producer, epoch}
    end
    return {stranger_problem(r, producer)}
  end
  if serial >= 0 and serial ~= r.serial then return {'again'} end
  if r.ongoing then return nil end
  if by ~= 'client' then return {'invalid_state'} end
  if version < 2 then
    if r.outcome == outcome or r.forgiving or not commit then return {'done', producer, epoch} end
    return {'invalid_state'}
  end
  if commit then return {'invalid_state'} end
  return nil   -- an abort of nothing raises the epoch
end

local function judge_end(ctx, entry)
  local _, id, producer, epoch, commit, version, by, serial, candidate = unpack(entry)
  local field = txn_field(id)
  local r = ctx.txns[field]
  if not r then return {'mapping'} end
  if r.next then return {'wait'} end
  local answer = end_answer(r, producer, epoch, commit, version, by, serial)
  if answer then return answer end
  local places = judge_markers(ctx, field, r, commit)
  if not places then return {'wait'} end
  local markers = take_markers(ctx, r, places)
  local ended, ended_epoch = transaction_pair(r)
  local record = {producer = r.producer, epoch = r.epoch, last_producer = producer, last_epoch = epoch,
    outcome = commit and 'committed' or 'aborted', by = by, serial = r.serial + 1, version = version}
  if version >= 2 or by == 'server' then record.producer, record.epoch = raised(r, candidate) end
  set_next(ctx, field, r, 'end', record)
  return {'ok', record.producer, record.epoch, producer, epoch, ended, ended_epoch, markers}
end

-- Offsets of a group, pending until the transaction ends.
local function judge_offsets(ctx, entry)
  local _, id, producer, epoch, version, group, term, rows = unpack(entry)
  local field = txn_field(id)
  local r = ctx.txns[field]
  local problem = owner_problem(r, producer, epoch)
  if problem then return {problem} end
  local record = ctx.groups[group_field(group)]
  if not coordinates(record, term) then return {'not_coordinator'} end
  local is_new = not has_group(r, group)
  if version < 2 and not r.forgiving and not (r.ongoing and not is_new) then return {'invalid_state'} end
  if r.offset_rows + rows > ctx.limits.offset_rows or is_new and #r.groups >= ctx.limits.groups then return {'too_many'} end
  if is_new and are_names_full(ctx.keys, ctx.limits) then return {'too_many'} end
  ctx.enter(group_field(group), record)
  begin_transaction(r, field, ctx.now, ctx.deadlines)
  if is_new then add_group(r, group) end
  r.offset_rows = r.offset_rows + rows
  if not ctx.entered[field] then r.offsets = r.offsets .. string.format('%d:', ctx.ticket) .. NO_BASE .. ',' end
  dirty(ctx, field, r)
  return {'ok', producer, epoch, '', NO_EPOCH, '', NO_EPOCH, {}}
end

local function is_idle_id(r, before)
  return not r.next and not r.ongoing and r.updated < before
end

local function judge_forget(ctx, entry)
  local _, id, before = unpack(entry)
  local field = txn_field(id)
  local r = ctx.txns[field]
  if not r then return {'mapping'} end
  if not is_idle_id(r, before) then return {'invalid_state'} end
  set_next(ctx, field, r, 'forget', {})
  return {'ok', r.producer, r.epoch, '', NO_EPOCH, '', NO_EPOCH, {}}
end

local TRANSACTION_ENTRIES = {init = judge_init, ['end'] = judge_end, txn_offsets = judge_offsets, forget_id = judge_forget}

-- A batch needs the list of its transaction's partitions if its producer has no batch of the transaction in the partition
-- yet. A reservation stops reading lists after this number of partitions. Batches that need more lists wait for the next one.
local LISTED = 4000

local function may_read_list(ctx, field, r)
  if part_lists[field] then return true end
  if ctx.listed_left <= 0 then return false end
  ctx.listed_left = ctx.listed_left - r.part_count
  return true
end

-- RETURNS nil, or why a batch may not join the transaction `txn`, {id, version}. `newest`: the producer's newest batch in the
-- partition, or nil; it has the serial of its transaction (7), so that `parts` is not searched for each batch.
local function member_problem(ctx, txn, producer, epoch, part, newest)
  local field = txn_field(txn[1])
  local r = ctx.txns[field]
  local problem = owner_problem(r, producer, epoch)
  if problem then return problem end
  local is_member = newest and newest[7] == r.serial
  if not is_member then
    if not may_read_list(ctx, field, r) then return 'wait' end
    is_member = has_part(ctx.keys, field, r, part)
  end
  if txn[2] < 2 and not r.forgiving and not (r.ongoing and is_member) then return 'invalid_state' end
  if not is_member and (r.part_count >= ctx.limits.partitions or are_names_full(ctx.keys, ctx.limits)) then
    return 'too_many_partitions'
  end
  return nil
end

-- RETURNS the serial of the transaction, which the batch joins. A fence takes this not back: a marker too many is harmless.
local function join(ctx, txn, part, newest)
  local field = txn_field(txn[1])
  local r = ctx.txns[field]
  if r.ongoing and newest and newest[7] == r.serial then return r.serial end
  begin_transaction(r, field, ctx.now, ctx.deadlines)
  if not has_part(ctx.keys, field, r, part) then add_part(ctx.keys, field, r, part) end
  ctx.txns_dirty[field] = r
  return r.serial
end
