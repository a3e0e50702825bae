// Package tracingtest is a collector for tests: it takes spans by
// OTLP/HTTP and decodes them by the published protobuf types. It may
// import those and nothing of Weir.
package tracingtest
