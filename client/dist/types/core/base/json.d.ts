/**
 * The value of a JSON text. An integer beyond 2^53 is a text of its digits, because the number would be that of a neighbour.
 * @throws SyntaxError if the text is no JSON
 */
export declare function parseJson(text: string): unknown;
/**
 * The JSON text of a value. A text of digits is a number again in the members which the trading service describes as ids that are
 * numbers. Undefined for what is no JSON, as with `JSON.stringify`.
 */
export declare function writeJson(value: unknown): string;
/** Makes `json()` of a response keep ids beyond 2^53. */
export declare function withIds(response: Response): Response;
