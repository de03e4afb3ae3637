"""The console: topics, groups, API keys and the audit log, for people."""

from django.contrib import admin

from queues.admin.control import AuditEntryAdmin, GroupAdmin, OperationAdmin, TopicAdmin
from queues.admin.keys import ApiKeyAdmin

__all__ = ["ApiKeyAdmin", "AuditEntryAdmin", "GroupAdmin", "OperationAdmin", "TopicAdmin"]

admin.site.site_header = admin.site.site_title = "Postdate"
admin.site.index_title = "Console"
