package trace

import (
	"fmt"
	"strings"
	"testing"
)

// Names of classes and codes keep every character that distinguishes them.
func TestOrdinaryTypesKeepTheirNames(t *testing.T) {
	for _, typ := range []string{
		"Http2Error", "OAuth2Exception", "SHA256Error", "java.lang.ArrayIndexOutOfBoundsException", "E11000", "ORA-00942", "HTTP404", "Error::V1::NotFound",
		"Base64DecodeError", "UTF8Error", "X509CertificateError", "EC2Error", "S3Exception", "SQLSTATE[42S02]", "SQLSTATE[42000]", "PG::UniqueViolation", "23505",
		"ECONNREFUSED", "TS2345", "CS0103", "NU1101", "E0382", "SRVE0255E", "DB2SQLException", "System.Int32Exception", "IPv6Error", "http_404", "status_500",
		"ERR_HTTP2_STREAM_ERROR", "ERR_1001", "Neo4jError", "Log4j2Exception", "java.util.zip.Adler32Exception", "com.acme.v2.FooException", "List`1",
		"Foo$1", "Foo$1234", "$Proxy12", "P2002", "Ed25519Error", "Curve25519Exception", "ChaCha20Poly1305Exception", "Secp256k1Error", "ISO8601Error", "Rfc3339Error",
		"#<Class:0x00007f8e1c0a>", "0x80070005", "-2147467259", "Windows1252Error", "KB4012345", "DecadeError", "facade", "DEADBEEF", "Errno::ENOENT", "ed25519.SignatureError",
		"HTTP 404", "error.503", "k8s.io/apimachinery.StatusError", "Straße2Fehler", "[42P01]", "3DSecureError", "C3P0Exception", "AWS.S3.403", "",
	} {
		if plain := string(appendWithoutIDs(nil, typ)); strings.Contains(plain, "*") {
			t.Errorf("%q becomes %q", typ, plain)
		}
	}
}

// Whatever a program counts up or draws at random for each error
// is taken out of its type.
func TestTypesLoseIDs(t *testing.T) {
	for want, types := range map[string][]string{
		"Error_*":               {"Error_8f3a9c", "Error_1234", "Error_00c4f1aa93", "Error_550e8400-e29b-41d4-a716-446655440000", "Error_550E8400_E29B_41D4_A716_446655440000", "Error_d41d8cd98f00b204e9800998ecf8427e", "Error_1732240000123"},
		"Timeout<*>":            {"Timeout<1234>", "Timeout<7>", "Timeout<8f3a9c>"},
		"TypeError#*":           {"TypeError#42", "TypeError#1a2b", "TypeError#8F3A9C"},
		"Foo@*":                 {"Foo@1a2b3c4d", "Foo@1a2b", "Foo@12345"},
		"Job*Failed":            {"Job12345Failed", "Job99999999Failed"},
		"Error*":                {"Error8f3a9c", "Error123456", "Error550e8400-e29b-41d4-a716-446655440000"},
		"Task-*-Failed":         {"Task-17042-Failed", "Task-9f86d081-Failed"},
		"*":                     {"550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e"},
		"com.acme.Task*.Failed": {"com.acme.Task1234567.Failed"},
		"Queue(*).Full":         {"Queue(17).Full"},
		"Worker[*]":             {"Worker[12]", "Worker[990]"},
		"a.B: order *":          {"a.B: order 81234", "a.B: order 9f86d081884c"},
	} {
		for _, typ := range types {
			if got := appendWithoutIDs(nil, typ); string(got) != want {
				t.Errorf("%q becomes %q, want %q", typ, got, want)
			}
		}
	}
}

// Types that are nothing but ids cost no more than others.
func TestLongTypesAreLinear(t *testing.T) {
	for _, seed := range []string{"1a", "g1a", "550e8400-e29b-41d4-a716-44665544000", "A1", "12345A", "#1", "_1", "1", "a", "0x1", "z1"} {
		typ := strings.Repeat(seed, maxLine/len(seed))
		plain := make([]byte, 0, maxLine)
		if n := testing.AllocsPerRun(1, func() { appendWithoutIDs(plain, typ) }); n > 0 {
			t.Errorf("%q allocates", seed)
		}
		if got := appendWithoutIDs(nil, typ); len(got) > len(typ) {
			t.Errorf("%q grows to %d", seed, len(got))
		}
	}
}

func BenchmarkTypeIDs(b *testing.B) {
	for _, typ := range []string{"java.lang.IllegalStateException", "Error_8f3a9c", strings.Repeat("g1a", 600), strings.Repeat("1az", 600)} {
		b.Run(fmt.Sprint(typ[:10]), func(b *testing.B) {
			plain := make([]byte, 0, maxLine)
			for b.Loop() {
				appendWithoutIDs(plain, typ)
			}
		})
	}
}
