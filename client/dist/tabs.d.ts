/** The tabs of a browser, as one of them sees them. */
export interface Tabs {
    /** True in the one tab that has the socket. */
    readonly isLeader: () => boolean;
    /** Sends a message to all other tabs. */
    readonly post: (message: unknown) => void;
    readonly close: () => void;
}
/**
 * Joins the other tabs. One of them leads, and another follows when it is closed or hidden in the back/forward cache.
 * Where Web Locks or BroadcastChannel are missing, as on a page without TLS, each tab leads itself.
 */
export declare function joinTabs(name: string, onLead: () => void, onMessage: (message: unknown) => void): Tabs;
