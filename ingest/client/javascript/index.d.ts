export type Level = "debug" | "info" | "warn" | "error" | "fatal";

export interface Entry {
  timestamp: string;
  level: Level;
  message: string;
  environment?: string;
  metadata?: Record<string, unknown>;
  error?: { type?: string; message?: string; stack_trace?: string[]; context?: Record<string, unknown> };
}

export interface Options {
  /** Such as https://logs.example.com/v1. Default: WEIR_BASE_URL. */
  baseURL?: string;
  /** Default: WEIR_API_KEY. */
  apiKey?: string;
  /** Of the server's certificate authority. Default: WEIR_CA_FILE, else those of Node. */
  caFile?: string;
  /** Of each entry that names none. */
  environment?: string;
  /** Milliseconds that an entry waits for others. Default: 1000. */
  interval?: number;
  /** That wait; beyond, the lowest level is dropped first. Default: 50000, in web pages 5000. */
  maxEntries?: number;
  /** That wait. Default: 32 MiB, in web pages 4 MiB. */
  maxBytes?: number;
  /** Milliseconds for which a batch is tried to be sent. Default: 300000. */
  deadline?: number;
  /** Changes an entry before it is encoded, or drops it by returning nothing. */
  redact?: (entry: Entry) => Entry | null | undefined;
  /** Web pages: what a page does not catch is an entry as well. Default: false. */
  captureErrors?: boolean;
  /** Is told what is dropped, but for its own logs. */
  onDrop?: (reason: string, entries: number) => void;
}

export interface Stats {
  accepted: number;
  dropped: Record<string, number>;
}

export class Client {
  constructor(options?: Options);
  log(level: Level, message: string, metadata?: Record<string, unknown> | Error, time?: Date | number): void;
  debug(message: string, metadata?: Record<string, unknown> | Error): void;
  info(message: string, metadata?: Record<string, unknown> | Error): void;
  warn(message: string, metadata?: Record<string, unknown> | Error): void;
  error(message: string, metadata?: Record<string, unknown> | Error): void;
  fatal(message: string, metadata?: Record<string, unknown> | Error): void;
  send(entry: Entry): void;
  flush(timeout?: number): Promise<boolean>;
  close(timeout?: number): Promise<boolean>;
  stats(): Stats;
}

export function errorOf(failure: Error): NonNullable<Entry["error"]>;
