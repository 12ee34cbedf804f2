package s3

import (
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		key  Credentials
		want string
	}{
		{Credentials{}, "s3 http://192.0.2.1:1 (anonymous)"},
		{Credentials{AccessKey: "a", SecretKey: "b"}, "(account "},
	} {
		s, err := New(Config{Settings: map[string]string{"endpoint": "http://192.0.2.1:1"}, Credentials: tt.key})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Describe(); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
