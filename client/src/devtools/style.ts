/** The style of the panel. Its colours follow the `color-scheme` of the page. */
export const STYLE = `
:host {
  --ink: light-dark(#121b26, #e9eef4);
  --muted: light-dark(#53616f, #a0aebc);
  --line: light-dark(#dde3ea, #27323f);
  --edge: light-dark(#8594a5, #66768a);
  --surface: light-dark(#ffffff, #141b24);
  --raised: light-dark(#f3f6f9, #1a232e);
  --accent: light-dark(#1d4ed8, #8fb1ff);
  --pressed: light-dark(#eaf0fe, #182643);
  --good: light-dark(#0b7a4b, #4fd39a);
  --bad: light-dark(#c02c33, #ff8f8a);
  --warn: light-dark(#8a5a00, #f2c063);
  container-type: inline-size;
  display: block;
  color: var(--ink);
  background: var(--surface);
  font: 0.875rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif;
}
:host([hidden]), [hidden] { display: none; }
* { box-sizing: border-box; }
h3, h4, p, ul, dl, dd, pre { margin: 0; padding: 0; }
h3, h4 { display: inline; font-size: 0.875rem; font-weight: 650; }
ul { list-style: none; }
code, pre, time, td { font-family: ui-monospace, 'SF Mono', 'Cascadia Mono', 'Liberation Mono', Menlo, monospace; font-size: 0.8125rem; }
code, pre, dd, p { overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
button, input {
  min-height: 2.125rem; padding: 0.25rem 0.7rem; border: 1px solid var(--edge); border-radius: 8px;
  background: var(--surface); color: var(--ink); font: inherit; font-size: 0.875rem;
}
button { font-weight: 600; cursor: pointer; }
button:hover { background: var(--raised); border-color: var(--ink); }
button[aria-pressed=true] { border-color: var(--warn); background: var(--pressed); box-shadow: inset 0 0 0 1px var(--warn); }
input { min-width: 0; width: 12rem; max-width: 100%; }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem; }
.faults { display: grid; gap: 0.4rem; margin-bottom: 0.75rem; }
.faults p, .bar label, dt, th, time, .way { color: var(--muted); }
.grid, .grid > div { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.75rem; align-items: start; align-content: start; }
details:not(td details) { min-width: 0; border: 1px solid var(--line); border-radius: 10px; }
.grid summary:has(h3) { padding: 0.5rem 0.75rem; cursor: pointer; }
.grid summary:has(h3) + div { padding: 0.25rem 0.75rem 0.75rem; }
.grid summary:has(h3) + .log { padding: 0; }
.frames > div { display: grid; gap: 0.6rem; }
.frames .log { border: 1px solid var(--line); border-radius: 8px; }
dl { display: grid; gap: 0.15rem 0.75rem; }
dl > div { display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); gap: 0.75rem; }
.paths { display: grid; gap: 1rem; }
.paths .state { display: inline; margin-left: 0.6rem; font-weight: 600; }
.state[data-state=open] { color: var(--good); }
.state:is([data-state=connecting], [data-state=stale], [data-state=waiting]) { color: var(--warn); }
.state:is([data-state=ended], [data-state=closed]) { color: var(--muted); }
.paths dl { margin-top: 0.25rem; }
.streams { margin-top: 0.35rem; display: grid; gap: 0.25rem; }
.streams li { padding-left: 0.7rem; border-left: 2px solid var(--accent); }
.streams span { color: var(--muted); }
.log { max-height: 20rem; overflow: auto; }
.problems .log > div { padding: 0.25rem 0.75rem 0.75rem; }
.troubles { display: grid; gap: 0.6rem; }
.troubles strong { color: var(--bad); }
table { width: 100%; border-collapse: collapse; }
th, td { padding: 0.3rem 0.6rem; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: var(--raised); font-size: 0.8125rem; font-weight: 600; }
thead th { border-top: 0; }
td { overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; }
tr[data-tone=good] td:nth-child(3) { color: var(--good); }
tr[data-tone=bad] td:nth-child(3) { color: var(--bad); }
td summary { cursor: pointer; }
td summary strong { font-family: system-ui, sans-serif; }
td summary code { color: var(--muted); }
td details[open] summary code { display: none; }
td details[open] summary::after { content: 'Fold'; color: var(--muted); }
pre { white-space: pre-wrap; }
@container (min-width: 44rem) {
  .grid { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .frames { grid-column: 1 / -1; }
  .frames td:nth-child(2) { white-space: nowrap; }
}
@container (min-width: 64rem) {
  .grid { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }
}
@container (max-width: 28rem) {
  dl > div { grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0.5rem; }
  th, td { padding-inline: 0.4rem; }
  .frames tr { display: grid; grid-template-columns: auto minmax(0, 1fr); }
  .frames thead { display: none; }
  .frames td:nth-child(3) { grid-column: 1 / -1; border-top: 0; }
}
`
