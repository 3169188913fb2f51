import { Agent, setGlobalDispatcher } from 'undici'

/*
 * From Node 26 on, fetch speaks HTTP/2 with a balancer that offers it, and sends a request again whose stream is refused: then a test
 * could not tell what the balancer repeats. A test that is about HTTP/2 asks for it.
 */
setGlobalDispatcher(new Agent({ allowH2: false }))
