-- This script may write on a server that has reached maxmemory, and exceed it.
-- Redis refuses a command that may take memory only while it is the first write of its script. HDEL
-- may always run, and no record has this field. A script with this part frees more memory than it
-- takes, or takes little: what is reserved gets published, and brokers keep their roles.

redis.pcall('HDEL', keys_by_name(KEYS).meta, 'no such field')
