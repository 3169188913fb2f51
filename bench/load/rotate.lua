-- A script for wrk: sends the requests of a file in turn. The file after `--` has each as it is sent, with a byte 30 between them.
local requests, at = {}, 0

function init(args)
  local file = io.open(args[1], 'rb')
  for text in file:read('*a'):gmatch('[^\30]+') do
    requests[#requests + 1] = text
  end
  file:close()
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
