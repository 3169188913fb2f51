/** What happens to a page, by the names that browsers give it. */
declare const EVENTS: readonly ['online', 'offline', 'pagehide', 'pageshow', 'focus', 'visibilitychange'];
/** One of them. `pagehide` and `pageshow` only for the back/forward cache. */
export type PageEvent = (typeof EVENTS)[number];
/** Calls the listener for every event of the page. @returns what ends it */
export declare function onPage(listener: (event: PageEvent) => void): () => void;
/** True unless the browser is sure that there is no network. */
export declare const isOnline: () => boolean;
export {};
