-- Sets the keys of redis-benchmark -r from ARGV[1] on, below ARGV[2], to a value of ARGV[3] bytes; about 8 MiB at a
-- time. Returns the number of the next key. The bytes are those that redis-benchmark uses.
local first, last, size = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local bytes = {}
for i = 1, math.min(size, 4096) do bytes[i] = string.char(48 + math.random(0, 63)) end
local value = string.rep(table.concat(bytes), math.ceil(size / #bytes)):sub(1, size)
local next = math.min(last, first + math.max(1, math.floor(8388608 / (size + 50))))
for i = first, next - 1 do
    redis.call('SET', string.format('key:%012d', i), value)
end
return next
