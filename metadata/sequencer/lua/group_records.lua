-- Groups in the hash `groups`: {term, owner, revision, state, protocol_type, open}.
-- `open`: the open tickets of the group's entries, as of a partition (open_lists.lua).
-- Entries about tiers have one record in common, and so have entries about security and about share groups: records that are nobody's,
-- there while one of their entries is open.
-- INVARIANT: a term is given once an epoch, the highest to the coordinator that took the group last;
-- term 0 is nobody's: the group was forgotten while entries of it were open.
-- A field is never '', because an empty group id is one, too.

local NO_TERM = 0

local TIERS_FIELD = 't:'
local SECURITY_FIELD = 's:'
local SHARES_FIELD = 'q:'

local function group_field(group)
  return 'g:' .. group
end

-- RETURNS the group's name, or nil where the field is no group's.
local function group_of(field)
  return field:sub(1, 2) == 'g:' and field:sub(3) or nil
end

local function nobodys(open)
  return {term = NO_TERM, owner = '', revision = 0, state = '', protocol_type = '', open = open}
end

-- Does `term` still coordinate the group of this record (nil: there is none)?
local function coordinates(record, term)
  return record ~= nil and term ~= NO_TERM and record.term == term
end
