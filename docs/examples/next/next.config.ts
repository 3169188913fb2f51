const PATH = '/:top(auth|api|ws|problems)/:path*'

export default { rewrites: async () => [{ source: PATH, destination: `${process.env.BFF_URL}/:top/:path*` }] }
