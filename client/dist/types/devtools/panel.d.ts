import { DevtoolsState } from './state.ts';
/** The one state of this page. */
export declare const devtools: DevtoolsState;
/** Rendered on a server, the module has no elements to extend. */
declare const Base: {
    new (): HTMLElement;
    prototype: HTMLElement;
};
/** `<trading-bff-devtools>`: what the clients of this page do, and what can be tried out with them. */
export declare class DevtoolsPanel extends Base {
    #private;
    connectedCallback(): void;
    disconnectedCallback(): void;
}
export {};
