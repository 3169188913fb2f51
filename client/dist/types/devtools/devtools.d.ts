import { DevtoolsPanel } from './panel.ts';
declare const NAME = "trading-bff-devtools";
declare global {
    interface HTMLElementTagNameMap {
        [NAME]: DevtoolsPanel;
    }
}
export type { DevtoolsPanel };
