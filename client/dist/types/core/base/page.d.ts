/** The events of a page that connections react to. */
declare const EVENTS: readonly ['online', 'offline', 'pagehide', 'pageshow', 'visibilitychange'];
/** An event of the page. `pagehide` and `pageshow` are limited to those of the back/forward cache. */
export type PageEvent = (typeof EVENTS)[number];
/**
 * Calls the listener for every event of the page.
 * @returns a function that stops the calls
 */
export declare function onPage(listener: (event: PageEvent) => void): () => void;
/** True unless the browser reports that it is offline. */
export declare const isOnline: () => boolean;
export {};
