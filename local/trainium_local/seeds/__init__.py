"""What a real account has before anybody deploys: public SSM parameters and machine images, zones, quotas."""
