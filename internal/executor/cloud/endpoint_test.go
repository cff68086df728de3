package cloud

import "testing"

func TestEndpointsThatATokenIsSentTo(t *testing.T) {
	for _, endpoint := range []string{"", "https://ec2.cn-north-1.amazonaws.com.cn", "https://management.chinacloudapi.cn/", "http://127.0.0.1:4566", "http://[::1]:4566"} {
		if err := SafeEndpoint(endpoint); err != nil {
			t.Errorf("%s: %v, want it taken", endpoint, err)
		}
	}
}
