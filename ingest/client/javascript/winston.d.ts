import type Transport from "winston-transport";
import { Client, Options } from "./index.js";

export default function weir(options?: Options & { client?: Client } & Transport.TransportStreamOptions): Promise<Transport & { client: Client }>;
