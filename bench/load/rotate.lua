-- A script for wrk: successive requests use the cookies of successive sessions. The file after `--` has one Cookie header
-- per line.
local requests, at = {}, 0

function init(args)
  for line in io.lines(args[1]) do
    wrk.headers['Cookie'] = line
    requests[#requests + 1] = wrk.format()
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  print(string.format('result %d %d %d %d %d', summary.requests, summary.duration, errors,
    latency:percentile(50), latency:percentile(99)))
end
