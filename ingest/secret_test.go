package ingest

import (
	"strings"
	"testing"
)

// What each named pattern finds is in «»; the rest of the text stays.
func TestSecrets(t *testing.T) {
	for name, texts := range map[string][]string{
		"email": {
			"«a@b.co»", "mail «jane.doe+logs@mail.example.com», please", "<«x@example.org»>.", "«ünal@exämple.de»", "«a@b.co» «c@d.io»", "@mention", "a@b", "a@1.22",
			"me@", "user@host:~/x", "x@y.z", "git@@example.com", "«o'neil@example.com»-", "http://«u@example.com»/", "to=«u@example.com»&x",
		},
		"ip": {
			"from «10.0.0.1»:8080", "«192.168.1.254».", "[«::1»]:80", "«2001:db8::1»: refused", "at «2001:0db8:85a3:0000:0000:8a2e:0370:7334»", "v1.2.3.4", "1.2.3",
			"1.2.3.4.5", "999.1.1.1", "12:30:45", "std::string", "a::b", "aa:bb:cc:dd:ee:ff", "10.0.0.1x", "«::ffff:10.1.2.3»", "ip=«10.0.0.1»,«10.0.0.2»", "_10.0.0.1",
			"ip:«10.0.0.1»", "client_ip:«10.0.0.1»", "remote:«10.0.0.1»:443", "tcp:«10.0.0.1»", "face:«10.0.0.1»", "ip:«2001:db8::1»", "node:«2001:db8::1»",
			"«10.0.0.1»-«10.0.0.9»", "lib-1.2.3.4", "mac:aa:bb:cc:dd:ee:ff", "at:12:30:45", "std::10",
		},
		"card-number": {
			"«4111111111111111»", "card «4111 1111 1111 1111» ok", "«5500-0000-0000-0004»", "4111111111111112", "1732958448000", "order 12 «378282246310005»",
			"0.4111111111111111", "x4111111111111111", "4111111111111111a", "«6011111111111117»,«3530111333300000»", "41111111111111111111111", "4111  1111 1111 1111",
		},
		"token": {
			"Authorization: Bearer «abc.def-123»", "bearer «0123456789abcdef»", "the bearer understands", "bearer of news", "x «eyJhbGciOi.eyJzdWIiOiIx.c2ln» y",
			"«eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.»", "eyJ", "eyJhbGciOi", "heyJude.", "BEARER «tok_12345»", "bearer\t«tok_12345»",
			"bearer  «tok_12345»",
		},
		"access-key": {
			"«AKIAIOSFODNN7EXAMPLE»", "AKIAIOSFODNN7EXAMPL", "key=«ghp_0123456789abcdefghijklmnopqrstuvwxyz»", "AKIA",
			"«weir_0123456789abcdef0123456789abcdef0123456789abcdef»", "xAKIAIOSFODNN7EXAMPLE",
			"«ghu_0123456789abcdefghijklmnopqrstuvwxyz»", "«sk_test_0123456789abcdefghijklmn»",
		},
		"password": {
			"password=«hunter2» user=bob", `{"password":"«hun ter»","x":1}`, "DB_PASSWORD: «x»", "password is wrong", "pwd='«a b»'", "api_key=«abc»&next=1",
			"postgres://bob:«s3cr:t»@db/x", "https://example.com:80/@x", "Authorization: Basic «dXNlcg==»", "password=", "a: b", "client-secret = «v», x", "secrets of: x",
			"token=«a»;token=«b»", "tokens=3",
			`"password"=>"«S»"`, `:password=>"«S»", x`, "password:\t«S»", "password:\n«S» x", "password     : «S»", "password := «S»", "password == «S»",
			`{"password":"«ab\"cdS»"}`, `password='«it\'s S»' x`, `{"password":"«ends so\\»","a":"b"}`, `{"password": «["S"]»}`, `{"password":«{"value":"S"}»,"a":1}`,
			`{"password":«["]",{"a":"S"}]»,"a":1}`, `{"password":[],"a":1}`, `password=«[password]» x`,
			"Cookie: «a=1; session=S»\nHost: x", "authorization=«Token S»", "Authorization: Digest «a=\"b\", c=\"S\"»", `{"Authorization":"«Token S»","a":1}`,
			`{\"password\":\"«S»\",\"a\":\"b\"}`, `{\"password\" : \"«a\\\"b S»\",\"a\":1}`, `{\\\"password\\\":\\\"«a S»\\\",\\\"a\\\":1}`,
			`{\"password\":«[\"S]\"]»,\"a\":1}`, `password="«never closed` + "»",
		},
	} {
		for _, marked := range texts {
			text := strings.NewReplacer("«", "", "»", "").Replace(marked)
			got, last := "", 0
			for i := range secrets[name] {
				secrets[name][i].each([]byte(text), func(start, end int) {
					got, last = got+text[last:start]+"«"+text[start:end]+"»", end
				})
			}
			if got += text[last:]; got != marked {
				t.Errorf("%s: %s\nwant %s", name, got, marked)
			}
		}
	}
}
