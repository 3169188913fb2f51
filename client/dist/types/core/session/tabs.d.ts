/** The other tabs of a browser, as one of them reaches them. */
export interface Tabs {
    /** Sends a message to all other tabs. */
    readonly post: (message: unknown) => void;
    readonly close: () => void;
}
/**
 * Joins the other tabs of the same origin. One of them leads; when it is closed or enters the back/forward cache,
 * another tab takes the lead. Without Web Locks, as on a page without TLS, every tab leads itself.
 * @param onLead called when this tab takes the lead, never before this function has returned
 */
export declare function joinTabs(name: string, onLead: () => void, onMessage: (message: unknown) => void): Tabs;
