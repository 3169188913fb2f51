import type { Traffic } from './traffic.ts';
/** A part of the panel that is drawn again after changes. */
export interface View {
    readonly root: HTMLElement;
    readonly draw: () => void;
}
/** Draws what went wrong, and what it means. */
export declare function troublesView(traffic: Traffic): View;
/** Draws the calls of the server. */
export declare function callsView(traffic: Traffic): View;
/** Draws the last frames: those whose text or path has what the user looks for, until the user holds them. */
export declare function framesView(traffic: Traffic): View;
