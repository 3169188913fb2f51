/** Creates an element with attributes and children. What the page has sent or received becomes text, and never markup. */
export declare function el<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes?: Readonly<Record<string, string>>, ...children: readonly (Node | string)[]): HTMLElementTagNameMap[Tag];
/** Changes a text only if it differs, so that what somebody has selected or hears stays. */
export declare function setText(node: Element, text: string): void;
/** Keeps the terms and texts of a list of descriptions, one below the other. */
export declare function drawFacts(list: HTMLElement, facts: readonly (readonly [term: string, text: string])[]): void;
/** Keeps a row for each entry, in the order of the list. Rows of entries that are still there stay what they are. */
export declare class Rows<Entry extends {
    readonly id: number;
}> {
    #private;
    constructor(body: HTMLElement, make: (entry: Entry) => HTMLElement, update?: (row: HTMLElement, entry: Entry) => void);
    draw(entries: readonly Entry[]): void;
}
/** 09:05:07 */
export declare const clock: (ms: number) => string;
/** 7 h 59 min, 29 min 5 s, 7 s */
export declare function duration(ms: number): string;
/** 1 stream, 2 streams */
export declare const count: (number: number, what: string) => string;
