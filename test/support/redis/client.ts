import { RedisClient } from '@redis/client'

/** Makes a client of a test. createClient() of redis would make a class of a thousand commands for every address. */
export const createClient = RedisClient.factory()
