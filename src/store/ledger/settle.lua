#!lua flags=allow-oom
-- Settles a report on one hash (see Ledger.settle in ledger.ts). test/support/budget/ledger-model.ts is the same as plain data.
-- KEYS[1]: the ledger. ARGV[1]: the terms, ARGV[2]: the report, both JSON. Returns the reply as JSON.
-- ARGV[3] and ARGV[4]: the time (ms) and the run of the server, for a test that compares this script with that.

-- Reads the whole ledger.
local key, terms, report = KEYS[1], cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local classes = {'orders', 'otps', 'reads'}
local function whole(number) return string.format('%.0f', number) end
local function total(held) return held.orders + held.otps + held.reads end
local function reply(value) return cjson.encode(value) end

local state, holders, spent = {}, {}, {}
-- Fields by name: a new value, or false for one that goes.
local changes = {}
local fields = redis.call('HGETALL', key)
for at = 1, #fields, 2 do
  local name, value = fields[at], fields[at + 1]
  local kind, rest = string.sub(name, 1, 2), string.sub(name, 3)
  if kind == 'b:' then
    spent[tonumber(rest)] = tonumber(value)
  elseif kind == 'h:' then
    local n = {}
    for number in string.gmatch(value, '%S+') do n[#n + 1] = tonumber(number) end
    holders[rest] = {sequence = n[1], spent = n[2], lapsed = n[3], expiresAt = n[4],
      held = {orders = n[5], otps = n[6], reads = n[7]}}
  else
    state[name] = value
  end
end
local function writeHolder(id, h)
  holders[id] = h
  changes['h:' .. id] = whole(h.sequence) .. ' ' .. whole(h.spent) .. ' ' .. whole(h.lapsed) .. ' ' .. whole(h.expiresAt)
    .. ' ' .. whole(h.held.orders) .. ' ' .. whole(h.held.otps) .. ' ' .. whole(h.held.reads)
end
local function count(at, tokens)
  if tokens <= 0 then return end
  local bucket = math.ceil(at / terms.bucketMs) * terms.bucketMs
  spent[bucket] = (spent[bucket] or 0) + tokens
  changes['b:' .. whole(bucket)] = whole(spent[bucket])
end

-- The ledger's clock, which never runs faster than those of its holders.
local server = tonumber(ARGV[3])
if not server then
  local time = redis.call('TIME')
  server = time[1] * 1000 + math.floor(time[2] / 1000)
end
local isNew = not state.id
local id = state.id or (report.holder .. '.' .. whole(report.sequence))
local shown = server + tonumber(state.offset or 0)
local last = isNew and shown or tonumber(state.now)
-- Another server, or a restarted one, may miss the last grants. A user that may not ask gets no id; then only a ledger that is
-- gone is noticed.
local run = ARGV[4] or string.match(tostring(redis.pcall('INFO', 'server')), 'run_id:(%w+)') or ''
local latest, skewMs = last, 0
if report.ledger == id then
  latest = report.heardAt + report.sinceMs
  if run == state.run then skewMs = terms.clockSkewMs end
end
local now = shown
if shown > latest + skewMs then now = latest end
now = math.max(last, now)
local quietUntil = tonumber(state.quietUntil or 0)
if isNew or run ~= state.run then quietUntil = now + terms.quietMs end
-- For as long as the longest window of those needs that have reported within it.
local keepMs, keepUntil, ownMs = tonumber(state.keepMs or 0), tonumber(state.keepUntil or 0), 0
for _, window in ipairs(terms.windows) do ownMs = math.max(ownMs, window.windowMs + terms.marginMs) end
if ownMs >= keepMs or now > keepUntil then keepMs, keepUntil = ownMs, now + ownMs end
changes['id'] = id
changes['run'] = run
changes['now'] = whole(now)
changes['offset'] = whole(now - server)
changes['quietUntil'] = whole(quietUntil)
changes['keepMs'] = whole(keepMs)
changes['keepUntil'] = whole(keepUntil)

-- Counts the tokens of ended leases as spent, and forgets what no window needs.
local ended = {}
for each, h in pairs(holders) do
  if h.expiresAt <= now and total(h.held) > 0 then ended[#ended + 1] = each end
end
for _, each in ipairs(ended) do
  local h = holders[each]
  count(h.expiresAt, total(h.held))
  writeHolder(each, {sequence = h.sequence, spent = h.spent, lapsed = h.lapsed + total(h.held), expiresAt = h.expiresAt,
    held = {orders = 0, otps = 0, reads = 0}})
end
local oldest = now - keepMs
for at in pairs(spent) do
  if at <= oldest then
    spent[at] = nil
    changes['b:' .. whole(at)] = false
  end
end
for each, h in pairs(holders) do
  if h.expiresAt <= oldest then
    holders[each] = nil
    changes['h:' .. each] = false
  end
end
local function save()
  local values, gone = {}, {}
  for name, value in pairs(changes) do
    if value then
      values[#values + 1] = name
      values[#values + 1] = value
    else
      gone[#gone + 1] = name
    end
  end
  for at = 1, #values, 2000 do redis.call('HSET', key, unpack(values, at, math.min(at + 1999, #values))) end
  for at = 1, #gone, 2000 do redis.call('HDEL', key, unpack(gone, at, math.min(at + 1999, #gone))) end
  redis.call('PEXPIRE', key, whole(terms.ttlMs))
end

-- Counts what the holder has spent.
local before = holders[report.holder]
if before and report.sequence <= before.sequence then
  save()
  return reply({is = 'outdated'})
end
local fresh, told = before and report.spent - before.spent or math.huge, 0
for _, spends in ipairs(report.spends) do told = told + spends[2] end
if told < fresh and not report.isWhole then
  save()
  return reply({is = 'unknown'})
end
local lapsed = before and before.lapsed or 0
for at = #report.spends, 1, -1 do
  local when, tokens, known = now - report.spends[at][1], math.min(report.spends[at][2], fresh), 0
  if before and when <= before.expiresAt then known = math.min(tokens, lapsed) end
  count(when, tokens - known)
  fresh, lapsed = fresh - tokens, lapsed - known
end
local mine = {sequence = report.sequence, spent = report.spent, lapsed = 0,
  expiresAt = now + terms.leaseMs + terms.leaseSkewMs, held = report.held}
holders[report.holder] = mine

-- How many tokens count in each window, and when more become free.
local active, held, ready = 0, 0, 0
for _, h in pairs(holders) do
  if h.expiresAt > now then
    active, held, ready = active + 1, held + total(h.held), ready + h.held.orders
  end
end
local used = {}
for at, window in ipairs(terms.windows) do
  used[at] = held
  local from = now - window.windowMs - terms.marginMs
  for when, tokens in pairs(spent) do
    if when > from then used[at] = used[at] + tokens end
  end
end
local times
local function liftMs(window, needed)
  if needed <= 0 then return 0 end
  if not times then
    times = {}
    for at in pairs(spent) do times[#times + 1] = at end
    table.sort(times)
  end
  local freed = 0
  for _, at in ipairs(times) do
    local lift = at + window.windowMs + terms.marginMs - now
    if lift > 0 then freed = freed + spent[at] end
    if freed >= needed then return lift end
  end
  return terms.leaseMs
end
local function spacingMs(class)
  local slowest = math.huge
  for _, window in ipairs(terms.windows) do slowest = math.min(slowest, window.ceilings[class] / window.windowMs) end
  local eachMs = math.max(terms.tokensPerReport / slowest, terms.windows[1].windowMs / terms.reportsPerWindow)
  return math.floor(math.min(terms.leaseMs * terms.renewPart, eachMs * active))
end

-- Grants what each class may have, and writes everything back.
local granted, waitMs, pauseMs = {}, {}, quietUntil - now
for _, class in ipairs(classes) do
  local free, tokens = {}, report.wanted[class]
  for at, window in ipairs(terms.windows) do
    local spare = class == 'orders' and 0 or ready
    free[at] = math.min(window.ceilings[class] - used[at] + spare, window.ceilings.orders - used[at])
    tokens = math.min(tokens, free[at])
  end
  if pauseMs > 0 then
    tokens = class == 'orders' and math.min(report.lapsed, report.wanted.orders) or 0
  end
  tokens = math.max(0, tokens)
  for at in ipairs(used) do used[at] = used[at] + tokens end
  if class == 'orders' then ready = ready + tokens end
  granted[class], waitMs[class] = tokens, 0
  if tokens < report.wanted[class] then
    local wait = spacingMs(class)
    for at, window in ipairs(terms.windows) do wait = math.max(wait, liftMs(window, 1 + tokens - free[at])) end
    waitMs[class] = pauseMs > 0 and pauseMs or wait
  end
end
writeHolder(report.holder, {sequence = mine.sequence, spent = mine.spent, lapsed = 0, expiresAt = mine.expiresAt,
  held = {orders = mine.held.orders + granted.orders, otps = mine.held.otps + granted.otps,
    reads = mine.held.reads + granted.reads}})
save()
return reply({is = 'settled', ledger = id, at = now, granted = granted, waitMs = waitMs,
  quietMs = math.max(0, quietUntil - now), used = used})
