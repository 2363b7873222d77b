-- Open tickets of a partition, of a group or of a writer's chain, oldest first, as text: 'ticket:what,' each.
-- (what: a partition's base offset, NO_BASE for a topic's or group's entry; a chain's 'seq:reserved at'.)
-- Text, because a table of them would be built and packed again for every segment in between.
-- INVARIANT: a reservation is blocked by every list in which it is not the first, and counted so in
-- `blocked`; whoever takes the first away frees the next (settle.lua).

local NO_BASE = '-1'

-- RETURNS the list without `ticket` and, if it was the first, the ticket that now is.
local function without(list, ticket)
  local at = (',' .. list):find(string.format(',%d:', ticket), 1, true)
  if not at then return list, nil end
  local left = list:sub(1, at - 1) .. list:sub(list:find(',', at, true) + 1)
  local first = at == 1 and left:match('^(%d+):')
  return left, first and tonumber(first) or nil
end

-- RETURNS the tickets in the list of a partition or group, as numbers.
local function tickets_of(list)
  local tickets = {}
  for ticket in list:gmatch('(%d+):%-?%d+,') do tickets[#tickets + 1] = tonumber(ticket) end
  return tickets
end

-- RETURNS the lowest base offset in a partition's list, or nil.
local function lowest_base(list)
  for base in list:gmatch(':(%-?%d+),') do
    if base ~= NO_BASE then return tonumber(base) end
  end
  return nil
end

-- RETURNS the ticket of `seq` in a chain's list, or nil.
local function ticket_of(list, seq)
  local ticket = list:match(string.format('(%%d+):%d:', seq))
  return ticket and tonumber(ticket)
end

-- RETURNS when `seq` of a chain's list was reserved (ms), or nil.
local function reserved_at(list, seq)
  local at = list:match(string.format(':%d:(%%d+),', seq))
  return at and tonumber(at)
end

-- Whether the list in a packed record of a partition is empty. The key is found without unpacking.
-- If the key is missing or its bytes occur twice (also as a number), the record is unpacked.
local function has_empty_list(packed)
  local at = packed:find('\164open', 1, true)
  if not at or packed:find('\164open', at + 5, true) then return cmsgpack.unpack(packed).open == '' end
  return packed:byte(at + 5) == 160
end
