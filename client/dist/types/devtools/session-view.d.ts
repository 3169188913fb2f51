import type { DevtoolsState } from './state.ts';
/** Draws the session of each client, and who has told of it. */
export declare function sessionView({ clients, traffic }: DevtoolsState): {
    readonly root: HTMLElement;
    readonly draw: () => void;
};
