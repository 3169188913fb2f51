/** What a reload keeps. It is in the history entry of the page, because this page stores nothing in the browser. */

export const remembered = (name) => history.state?.[name]

export function remember(name, value) {
  history.replaceState({ ...history.state, [name]: value }, '')
}
