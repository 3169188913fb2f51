/** The commit that this server was built from, as the image has it; `unknown` elsewhere. */
export const REVISION = process.env['REVISION'] || 'unknown'
