import { Client, Options } from "./index.js";

export default function weir(options?: Options & { client?: Client }): { client: Client; write(line: string): void };
