/** Loaded by `--import`: the time of day of the process jumps by up to a minute and a half, every minute. */
const STEP_MS = 180_000
const realNow = Date.now.bind(Date)
let stepMs = 0
Date.now = () => Math.floor(realNow() + stepMs)
setInterval(() => (stepMs = (Math.random() - 0.5) * STEP_MS), 60_000).unref()
