-- Requests the files at random. Writes what wrk's report does not have: all latencies (wrk.latency), and the numbers of
-- the report as integers.
local threads = 0

function setup(thread)
    thread:set("id", threads)
    threads = threads + 1
end

function init()
    math.randomseed({{seed}}{{INSTANCE_NUM}} * 1000 + id)
end

function request()
    return wrk.format("GET", "/" .. math.random(0, {{files}} - 1))
end

function done(summary, latency)
    -- latency(i) counts from the beginning each time: minutes for a long tail. It is a userdata with a pointer to
    -- count, limit, minimum, maximum, and the counts by µs.
    local stats, count = require("ffi").cast("uint64_t **", latency)[0], 0
    if summary.requests > 0 and stats[2] == latency.min and stats[3] == latency.max then
        local file = io.open("/output/wrk.latency", "w")
        for us = latency.min, latency.max do
            local n = tonumber(stats[4 + us])
            if n > 0 then
                file:write(us, " ", n, "\n")
            end
        end
        file:close()
        count = tonumber(stats[0])
    end
    local e = summary.errors
    print(string.format("cnsbench: %d requests by %d connections in %d us, %d bytes, errors: connect %d, read %d, " ..
        "write %d, timeout %d, status %d; %d latencies", summary.requests, {{connections}}, summary.duration,
        summary.bytes, e.connect, e.read, e.write, e.timeout, e.status, count))
end
