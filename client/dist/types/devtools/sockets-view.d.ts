import type { DevtoolsState } from './state.ts';
/** Draws the sockets, with their streams and queues. */
export declare function socketsView(state: DevtoolsState): {
    readonly root: HTMLElement;
    readonly draw: () => void;
};
