import { Agent, setGlobalDispatcher } from 'undici'

/*
 * From Node 26 on, fetch speaks HTTP/2 with a balancer that offers it, and asks again by itself when a connection is lost: then a
 * test could not tell what the balancer repeats. Where a test is about HTTP/2, it asks for that.
 */
setGlobalDispatcher(new Agent({ allowH2: false }))
